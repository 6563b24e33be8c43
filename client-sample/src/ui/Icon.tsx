/** The icons: strokes on a 24-unit square, drawn in the text's colour. */
const PATHS = {
  board: "M4 5h16M4 12h16M4 19h10",
  terminal: "M5 7l5 5-5 5M12.5 18H19",
  wall: "M4 5h7v7H4zM13 5h7v4h-7zM13 12h7v7h-7zM4 15h7v4H4z",
  folder: "M3.5 7a2 2 0 0 1 2-2h4l2 2.5h7a2 2 0 0 1 2 2V17a2 2 0 0 1-2 2h-13a2 2 0 0 1-2-2z",
  device: "M8 3.5h8a1.5 1.5 0 0 1 1.5 1.5v14a1.5 1.5 0 0 1-1.5 1.5H8A1.5 1.5 0 0 1 6.5 19V5A1.5 1.5 0 0 1 8 3.5zM11 17.5h2",
  audit: "M7 3.5h7l4 4V20a.5.5 0 0 1-.5.5h-11A.5.5 0 0 1 6 20V4.5a1 1 0 0 1 1-1zM9 12h6M9 16h6",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 4.5v5M8 14.5v5",
  back: "M14.5 5.5L8 12l6.5 6.5",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.5 15.5L20 20",
  branch: "M7 4.5v15M7 14c0-4 10-2 10-7M7 5h.01M17 6h.01",
  close: "M6 6l12 12M18 6L6 18",
  play: "M8 5.5v13l10-6.5z",
  down: "M6 9.5l6 6 6-6",
  up: "M6 14.5l6-6 6 6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
