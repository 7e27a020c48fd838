from __future__ import annotations

import pytest

from sourcepanel.notes.reading_time import (
    CHARACTERS_PER_MINUTE,
    CODE_LINES_PER_MINUTE,
    WORDS_PER_MINUTE,
    reading_time,
)


@pytest.mark.parametrize(
    ("html", "characters", "words", "code_lines"),
    [
        ("<p>梯度同步。</p>", 4, 0, 0),
        ("<p>用 reduce-scatter 合并 <code>get_forward_backward_func</code></p>", 3, 3, 0),
        ("<p>a<br>b</p><ul><li>c</li><li>d</li></ul>", 0, 4, 0),
        ("<p>don't &amp; ’ 3.5</p>", 0, 3, 0),
        ("<pre><code>def f():\n\n    return 汉字\n</code></pre><pre>one</pre>", 0, 0, 3),
        ("<pre><span>a</span> <span>b</span>\n</pre>后", 1, 0, 1),
        ("<script>var x</script><style>a{}</style><svg><title>t</title></svg>", 0, 0, 0),
        ("<p>𠀀㐀豈</p>", 3, 0, 0),
        ("", 0, 0, 0),
        ("</pre></script><p>unclosed <pre>x", 0, 1, 1),
    ],
)
def test_counts(html: str, characters: int, words: int, code_lines: int):
    time = reading_time(html)
    assert (time.characters, time.words, time.code_lines) == (characters, words, code_lines)


@pytest.mark.parametrize(
    ("html", "minutes"),
    [
        ("", 1),
        ("<p>" + "字" * CHARACTERS_PER_MINUTE + "</p>", 1),
        ("<p>" + "字" * (CHARACTERS_PER_MINUTE * 10) + "</p>", 10),
        ("<p>" + "word " * (WORDS_PER_MINUTE * 10) + "</p>", 10),
        ("<pre>" + "code\n" * int(CODE_LINES_PER_MINUTE * 6) + "</pre>", 6),
        ("<p>" + "字" * CHARACTERS_PER_MINUTE + " word" * WORDS_PER_MINUTE + "</p><pre>x\n</pre>", 3),
    ],
)
def test_each_kind_has_its_own_rate(html: str, minutes: int):
    assert reading_time(html).minutes == minutes
