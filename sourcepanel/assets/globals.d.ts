/** Types shared by the scripts; read by the type checker only, never sent to a browser. */

type Layout = "dock" | "drawer" | "sheet";

interface PanelParts {
  panel: HTMLElement;
  grip: HTMLElement;
  head: HTMLElement;
  /** Buttons of the features, below the head. */
  tools: HTMLElement;
  body: HTMLElement;
  foot: HTMLElement;
  live: HTMLElement;
}

/** One definition: qualified name, kind, first line, line of the name, last line. */
type SymbolRow = [name: string, kind: string, start: number, line: number, end: number];

/** A pin, as panel.py writes it. */
interface Pin {
  ref: string;
  commit: string;
  blob: string;
  tree: string;
  license: [notice: string, href: string];
  versions?: OtherVersion[];
}

/** A version besides the pin at which linked lines can be shown. */
interface OtherVersion {
  name: string;
  commit: string;
  blob: string;
}

/** What became of linked lines at another version, as versions_view.py writes it; `path` is empty where the file is gone. */
interface Elsewhere {
  status: "changed" | "cosmetic" | "moved" | "gone";
  /** Whether it may be another place. */
  unsure: boolean;
  path: string;
  start: number;
  end: number;
  /** Around the range, in it on both sides, only there, only at the pin. */
  rows: [sign: "" | "=" | "+" | "-", number: number, html: string][];
}

interface SiteConfig {
  strings: Record<string, string>;
  repositories: Record<string, Pin>;
}

/** A data file, as panel.py writes it. */
type Data =
  | {
      kind: "file";
      blob: string;
      lines: number;
      notice: "" | "latin1" | "plain" | "empty";
      language: string;
      columns: number;
      symbols: SymbolRow[];
      sections: string[];
      /** By commit: the ranges (`10-20`) that differ there. */
      versions?: Record<string, string[]>;
      mentions?: MentionRow[];
      events?: EventRow[];
    }
  | { kind: "binary"; blob: string }
  | { kind: "absent"; blob: string; lines: number; links: [start: number, end: number, symbol: string, kind: string][] }
  | { kind: "folder"; complete: boolean; entries: [name: string, folder: boolean, here: boolean][] };

/** A sentence of a note about these lines (none for 0), as mentions.py writes it; `url` from the site's root. */
type MentionRow = [start: number, end: number, page: string, url: string, heading: string, before: string, text: string, after: string];

/** What a recorded run did at a line, as events.py writes it. */
type EventRow = [line: number, trace: string, url: string, command: string, calls: [api: string, group: string, count: number][]];

interface Entry {
  text: string;
  href: string;
  /** Address in the panel; null for what opens on GitHub only. */
  src: string | null;
  folder: boolean;
  title: string | null;
}

interface StateModule {
  initial: State;
  parse(text: string, repos: Iterable<string>): Address | null;
  format(address: Address): string;
  query(search: string, address: Address | null, more?: Record<string, string>): string;
  fromQuery(search: string, repos: Iterable<string>): Address | null;
  dataPath(file: string): string;
  key(address: Address): string;
  reduce(state: State, action: Action): State;
  symbolAt(symbols: SymbolRow[], start: number, end: number): string;
}

interface ViewModule {
  /** Lines of a section. */
  SECTION: number;
  element(tag: string, properties?: Record<string, any>, ...children: (Node | string)[]): any;
  code(
    data: Extract<Data, { kind: "file" }>,
    options: { label: string; notice: string; href: (line: number) => string },
  ): View;
  icon(path: string): SVGSVGElement;
  list(entries: Entry[], options: { label: string; notice: string }): View;
  message(text: string, actions: HTMLElement[], options?: { className?: string; entries?: Entry[] }): View;
}

interface Parts {
  say(name: string, values?: Record<string, string | number>): string;
  range(address: Address): string;
  head(address: Address, data: Data | undefined, close: () => void): HTMLElement[];
  foot(address: Address): (HTMLElement | string)[];
  label(address: Address): string;
  view(address: Address, data: Data): View;
  loading(address: Address): View;
  failed(address: Address, retry: () => void): View;
}

/** What a feature may use of the panel. */
interface PanelApi {
  /** Address of the folder that holds the scripts. */
  base: string;
  site: SiteConfig;
  repos: string[];
  say: Parts["say"];
  range: Parts["range"];
  /** The panel's elements; builds them on first use. */
  panel(): PanelParts;
  state(): State;
  /** Data of a file that is loaded. */
  data(key: string): Data | undefined;
  /** The view of what is open, once it is there. */
  view(): View | undefined;
  dispatch(action: Action, options?: { history?: "push" | "replace" | ""; focus?: boolean }): void;
  /** Write what is open, and the features' parameters, into the address bar. */
  remember(how: "push" | "replace"): void;
  /** Run a script of this folder, once while it is on its way; done also where there is none. */
  need(path: string): Promise<void>;
  /** The features that come with the first file are there. */
  later(): Promise<void>;
  load(key: string): void;
  close(): void;
  /** Say it to screen readers. */
  announce(text: string): void;
}

/** One thing the panel can do besides showing a file; made once, when the site is configured. */
interface Feature {
  /** Buttons for the tool bar, asked for with each state; give the same nodes each time, so that one keeps the focus. */
  tools?(address: Address, data: Data | undefined): Node[];
  /** A view was made for a file; its `dispose` is called when it is dropped. */
  view?(view: View, address: Address, data: Data): void;
  /** Parameters that stand beside `src` in the address bar. */
  query?(): Record<string, string>;
  /** The address bar was read. */
  sync?(query: URLSearchParams): void;
  /** The state changed and is shown. */
  state?(before: State, now: State): void;
}

/** A key, and its line on the help sheet (`?`). */
interface Key {
  /** As `KeyboardEvent.key` spells it, with `Alt+` before it where needed: "p", "Z", "/", "Alt+ArrowLeft". */
  keys: string[];
  /** Name of the string, without `panel.`, that tells what it does. */
  says: string;
  /** Left out where the key is only told of (Enter in a field). False: not now, the key stays the browser's. */
  run?(event: KeyboardEvent): boolean | void;
  /** Where it works besides the panel: on the whole page, never in a field. Keep such keys few. */
  where?: "page";
}

/** One line of a list to pick from. */
interface Choice {
  text: string;
  /** Small print after it. */
  note?: string;
  /** Kind of a symbol, `file` or `folder`; chooses the sign before it. */
  kind?: string;
  /** Steps of indentation. */
  depth?: number;
  value: any;
}

/** A file or name that fits what a reader looks for. */
interface Found {
  text: string;
  /** The file of a name. */
  note?: string;
  kind?: string;
  href: string;
  /** Its address in the panel; empty where the panel does not have it. */
  src: string;
  /** Fits letter by letter from end to end. */
  whole: boolean;
}

/** Small windows over the code; one at a time. Escape, a click outside and another file close them. */
interface Windows {
  /** A button of the tool bar that is only a picture; `label` is its name and its hint. */
  tool(label: string, icon: string, onclick: () => void, properties?: Record<string, any>): HTMLButtonElement;
  /** Open one; opened again from the same button it closes. Returns what closes it. Arrows walk its buttons. */
  pop(api: PanelApi, options: { label: string; button?: HTMLElement; closed?(): void }, ...children: (Node | string)[]): () => void;
  /** A field that filters a list; arrows move, Enter or a click picks. */
  pick(
    api: PanelApi,
    options: {
      label: string;
      button?: HTMLElement;
      choices(query: string): Choice[];
      /** Which to stand on while the field is empty. */
      start?: number;
      pick(choice: Choice): void;
    },
  ): void;
  /** Move the focus along a row of buttons. */
  walk(row: Element[], event: KeyboardEvent, back: string, on: string): void;
  /** Close what is open. */
  close(): void;
}

/** What a pointer or the keyboard may ask about, and how the card about it is filled. */
interface Hover {
  anchor: Element;
  label: string;
  fill(show: (...nodes: (Node | string)[]) => void): void;
}

interface Card {
  close(): void;
  /** Each is asked about an element that is pointed at or focused. */
  hovers: ((target: Element) => Hover | null | undefined)[];
}

/** What identifiers mean and who uses what, as xref/data.py writes it. */
interface Meanings {
  paths: string[];
  here: (0 | 1)[];
  definitions: [path: number, name: string, kind: string, start: number, end: number, signature: string, doc: string][];
  meanings: [certain: 0 | 1, ...definitions: number[]][];
  own: [definition: number, line: number, column: number, uses: [path: number, uses: number[]][], overridden: number[]][];
}

/** All files and names of a repository, as panelindex.py writes them. */
interface Names {
  files: string[];
  here: (0 | 1)[];
  names: [name: string, kind: number, file: number, start: number, end: number][];
}

declare var SourcePanel: {
  index(key: string, data: Meanings): void;
  names(data: Record<string, Names>): void;
  sections(url: string, data: Record<string, string>): void;
  version(commit: string, key: string, ranges: Record<string, Elsewhere>): void;
  /** Opens the list of all files and names. */
  quick?(): void;
  /** Comes with the scripts that `later` loads. */
  lookup?(query: string, most: number): Promise<{ found: Found[]; title: string; more: (count: number) => string }>;
  /** Loads what is not needed before the panel opens. */
  later?(): Promise<void>;
  card: Card;
  /** Features push what they listen for. */
  keys: Key[];
  windows: Windows;
  /** Of graph.js: fits the drawings that are in the page now. */
  graph?: { show(): void };
  /** Filled by the feature scripts before `configure`. */
  features?: ((api: PanelApi) => Feature)[];
  state: StateModule;
  view: ViewModule;
  parts(site: SiteConfig): Parts;
  resize(ui: PanelParts, panel: { layout: () => Layout; close: () => void }): void;
  define(key: string, data: Data): void;
  configure(site: SiteConfig): void;
  open(text: string, from?: HTMLElement): void;
  close(): void;
  readonly current: State;
};

/** Material's observable of pages, where that theme is used. */
declare var document$: { subscribe(next: () => void): void } | undefined;
