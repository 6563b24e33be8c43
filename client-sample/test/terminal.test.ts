import { expect, it } from "vitest";
import { withControl } from "../src/terminal/keys.ts";
import { OutputTracker } from "../src/terminal/OutputTracker.ts";
import { inputPieces, parseOutput } from "../src/terminal/protocol.ts";

function track() {
  const log: string[] = [];
  const pending: (() => void)[] = [];
  const acked: number[] = [];
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  const tracker = new OutputTracker(
    {
      write: (bytes, done) => {
        log.push(`write ${text(bytes)}`);
        pending.push(done);
      },
      repaint: (bytes, cols, rows) => log.push(`repaint ${cols}x${rows} ${text(bytes)}`),
      resize: (cols, rows) => log.push(`resize ${cols}x${rows}`),
    },
    (offset) => acked.push(offset),
  );
  const process = () => pending.splice(0).forEach((done) => done());
  const output = (offset: number, words: string) => tracker.take({ offset, bytes: new TextEncoder().encode(words) });
  return { tracker, log, acked, process, output };
}

it("resumes behind the last byte it was given", () => {
  const { tracker, output } = track();
  tracker.attached(100);
  output(100, "hello");
  tracker.reconnect();
  expect(tracker.offset).toBe(105);
});

it("shows a repaint in one stroke, when all of it is there", () => {
  const { tracker, log, output } = track();
  tracker.attached(50);
  tracker.startRepaint({ type: "repaint", offset: 50, length: 10, cols: 80, rows: 24 });
  output(50, "abcde");
  expect(log).toEqual([]);
  output(50, "fghij");
  output(50, "after");
  expect(log).toEqual(["repaint 80x24 abcdefghij", "write after"]);
  expect(tracker.offset).toBe(55);
});

it("asks for a screen anew when the repaint was cut", () => {
  const { tracker, output } = track();
  tracker.attached(50);
  tracker.startRepaint({ type: "repaint", offset: 50, length: 10, cols: 80, rows: 24 });
  output(50, "abc");
  tracker.reconnect();
  expect(tracker.offset).toBeUndefined();
});

it("takes an empty repaint for the empty screen it is", () => {
  const { tracker, log } = track();
  tracker.startRepaint({ type: "repaint", offset: 0, length: 0, cols: 80, rows: 24 });
  expect(log).toEqual(["repaint 80x24 "]);
});

it("acknowledges what was processed, not what came", () => {
  const { tracker, acked, process, output } = track();
  tracker.attached(0);
  output(0, "ab");
  output(2, "cd");
  expect(acked).toEqual([]);
  process();
  expect(acked.at(-1)).toBe(4);
});

it("acknowledges a flood before it is over", () => {
  const { tracker, acked, process } = track();
  tracker.attached(0);
  const piece = new Uint8Array(64 * 1024);
  for (let index = 0; index < 4; index += 1) tracker.take({ offset: index * piece.length, bytes: piece });
  process();
  expect(acked.length).toBeGreaterThan(1);
  expect(acked.at(-1)).toBe(4 * piece.length);
});

it("reads the offset of a frame, large ones too", () => {
  const frame = new ArrayBuffer(10);
  new DataView(frame).setBigUint64(0, 2n ** 52n);
  new Uint8Array(frame).set([65, 66], 8);
  expect(parseOutput(frame)).toEqual({ offset: 2 ** 52, bytes: new Uint8Array([65, 66]) });
  expect(() => parseOutput(new ArrayBuffer(3))).toThrow(RangeError);
});

it("cuts a long paste into frames the server takes", () => {
  const pieces = [...inputPieces(new Uint8Array(150_000))];
  expect(pieces.map((piece) => piece.length)).toEqual([65_536, 65_536, 18_928]);
});

it("makes control characters of letters, and leaves the rest", () => {
  expect(withControl("c")).toBe("\x03");
  expect(withControl("C")).toBe("\x03");
  expect(withControl("[")).toBe("\x1b");
  expect(withControl(" ")).toBe("\0");
  expect(withControl("?")).toBe("\x7f");
  expect(withControl("é")).toBe("é");
  expect(withControl("paste")).toBe("paste");
});
