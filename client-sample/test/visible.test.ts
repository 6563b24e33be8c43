import { expect, it } from "vitest";
import { asksForSecret, looksSecret } from "../src/text/secrets.ts";
import { makeVisible } from "../src/text/visible.ts";

it("shows what a person would overlook before allowing it", () => {
  expect(makeVisible("rm\u200b -r")).toBe("rm⟨U+200B⟩ -r");
  expect(makeVisible("a\u202eb\u0000\u{e0041}")).toBe("a⟨U+202E⟩b⟨U+0000⟩⟨U+E0041⟩");
  expect(makeVisible(`ls${" ".repeat(400)}; rm -r /`)).toBe("ls ␠×400 ; rm -r /");
});

it("leaves ordinary text as it is", () => {
  const text = "if (x) {\n\treturn 'é 漢字 🎭';\n}";
  expect(makeVisible(text)).toBe(text);
});

it("warns of keys and of questions for them, and of no sentence", () => {
  expect(looksSecret("use sk-abcdefgh12345678")).toBe(true);
  expect(looksSecret("aG93IGRvIHlvdSBkbyB0aGlzPzEyMzQ1")).toBe(true);
  expect(looksSecret("Take the second, and internationalization too, see src/components/session/list.ts")).toBe(false);
  expect(asksForSecret("What is your API key?")).toBe(true);
  expect(asksForSecret("Which database would you like?")).toBe(false);
});
