/** A key of the bar that touch screens get, which have no Esc, Tab, Ctrl and arrows. */
export interface BarKey {
  label: string;
  /** What a screen reader says. */
  name: string;
  /** What is sent; arrows depend on the mode the program set. */
  data: (isApplicationMode: boolean) => string;
}

const plain = (label: string, name: string, data: string): BarKey => ({ label, name, data: () => data });
const arrow = (label: string, name: string, letter: string): BarKey => ({
  label,
  name,
  data: (isApplicationMode) => `\x1b${isApplicationMode ? "O" : "["}${letter}`,
});

export const BAR_KEYS: BarKey[] = [
  plain("Esc", "Escape", "\x1b"),
  plain("Tab", "Tab", "\t"),
  plain("⇧Tab", "Shift Tab", "\x1b[Z"),
  arrow("←", "Left", "D"),
  arrow("↓", "Down", "B"),
  arrow("↑", "Up", "A"),
  arrow("→", "Right", "C"),
  plain("⏎", "Enter", "\r"),
];

/** Returns what Ctrl makes of a typed text: of one letter its control character. */
export function withControl(data: string): string {
  if (data.length !== 1) return data;
  const code = data.toUpperCase().charCodeAt(0);
  if (code === 0x20) return "\0";
  return code >= 0x3f && code <= 0x5f ? String.fromCharCode((code & 0x1f) | (code === 0x3f ? 0x60 : 0)) : data;
}
