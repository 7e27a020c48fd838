"""Every sentence the site shows that no note wrote, in Chinese and English.

Keys that start with `panel.` also go to the browser (`sourcepanel/site.js`), where `{name}` is filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ZH = {
    "link.verified": "已校验 @ {ref} ({short})",
    "link.broken": "此链接没有通过校验：{message}",
    "panel.label": "源码：{path}",
    "panel.folder": "目录：{path}",
    "panel.code": "{path} 的源码",
    "panel.lines": "第 {start}–{end} 行",
    "panel.line": "第 {start} 行",
    "panel.total": "共 {count} 行",
    "panel.verified": "已校验",
    "panel.verifiedTitle": "与 {ref} ({commit}) 的 git blob {blob} 逐字节一致",
    "panel.verifiedLock": "链接已按 sourcepanel.lock 校验：{ref} ({commit})",
    "panel.github": "在 GitHub 打开",
    "panel.close": "关闭源码面板",
    "panel.resize": "调整源码面板大小",
    "panel.loading": "正在载入 {path} …",
    "panel.opened": "已打开 {path}，{range}",
    "panel.closed": "源码面板已关闭",
    "panel.failed": "无法载入 {path}：这次构建的站点里没有它的源码文件。",
    "panel.retry": "重试",
    "panel.absent": "本次构建没有这个文件的全文（构建所用的快照不含它）。链接已按 lock 校验，全文请在 GitHub 上读。",
    "panel.binary": "这是二进制文件，没有可显示的文本。",
    "panel.empty": "这是一个空文件。",
    "panel.latin1": "这个文件不是 UTF-8，按 Latin-1 显示，个别字符可能不对。",
    "panel.plain": "这个文件没有语法高亮，下面是纯文本。",
    "panel.partial": "构建所用的快照不完整，这里只列出已知的文件。",
    "panel.external": "{name}（在 GitHub 打开）",
    "panel.license": "许可证",
}

_EN = {
    "link.verified": "verified @ {ref} ({short})",
    "link.broken": "this link did not pass its check: {message}",
    "panel.label": "Source: {path}",
    "panel.folder": "Folder: {path}",
    "panel.code": "Source of {path}",
    "panel.lines": "Lines {start}–{end}",
    "panel.line": "Line {start}",
    "panel.total": "{count} lines",
    "panel.verified": "verified",
    "panel.verifiedTitle": "Byte for byte git blob {blob} of {ref} ({commit})",
    "panel.verifiedLock": "Link verified by sourcepanel.lock: {ref} ({commit})",
    "panel.github": "Open on GitHub",
    "panel.close": "Close the source panel",
    "panel.resize": "Resize the source panel",
    "panel.loading": "Loading {path} …",
    "panel.opened": "Opened {path}, {range}",
    "panel.closed": "Source panel closed",
    "panel.failed": "Cannot load {path}: this build of the site holds no source file for it.",
    "panel.retry": "Try again",
    "panel.absent": "This build holds no text of this file (its snapshot lacks it). "
    "The link was verified by the lock; read the file on GitHub.",
    "panel.binary": "A binary file: no text to show.",
    "panel.empty": "An empty file.",
    "panel.latin1": "This file is not UTF-8; it is shown as Latin-1, and a few characters may be wrong.",
    "panel.plain": "This file has no syntax colours; the plain text follows.",
    "panel.partial": "The snapshot of this build is not complete; only known files are listed.",
    "panel.external": "{name} (on GitHub)",
    "panel.license": "licence",
}

_TABLES = {"zh": _ZH, "en": _EN}


def strings(language: str = "zh") -> Mapping[str, str]:
    """The table of a language (`zh`, `zh-Hans`, `en` …); English for any other."""
    return MappingProxyType(_TABLES.get(language.partition("-")[0].lower(), _EN))
