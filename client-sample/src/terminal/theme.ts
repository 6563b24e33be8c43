import type { ITheme } from "@xterm/xterm";

const DARK: ITheme = {
  background: "#121316", foreground: "#e6e4e0", cursor: "#f0916a", selectionBackground: "#3d4a63",
  black: "#1d1f23", red: "#f07178", green: "#8fc17c", yellow: "#e3bf74",
  blue: "#7fb0f2", magenta: "#c79bea", cyan: "#6fc7c2", white: "#d6d3cd",
  brightBlack: "#7d838c", brightRed: "#ff8f94", brightGreen: "#a8d698", brightYellow: "#f2d592",
  brightBlue: "#a0c6f8", brightMagenta: "#d9b8f2", brightCyan: "#93dcd7", brightWhite: "#f6f4f0",
};

const LIGHT: ITheme = {
  background: "#ffffff", foreground: "#24262a", cursor: "#b4491f", selectionBackground: "#cfdcf2",
  black: "#24262a", red: "#b3261e", green: "#2c6e2f", yellow: "#7a5600",
  blue: "#1f5db3", magenta: "#7b3f9e", cyan: "#0f6b70", white: "#5f646b",
  brightBlack: "#6b7078", brightRed: "#c5352c", brightGreen: "#38803b", brightYellow: "#8c6400",
  brightBlue: "#2b6cc9", brightMagenta: "#8f4fb5", brightCyan: "#147c82", brightWhite: "#3a3d42",
};

/** The colours of the terminal that go with the page's. */
export function themeNow(): ITheme {
  return matchMedia("(prefers-color-scheme: dark)").matches ? DARK : LIGHT;
}
