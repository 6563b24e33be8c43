import { h } from "preact";
import { render } from "preact-render-to-string";
import { expect, it } from "vitest";
import { Markdown } from "../src/text/Markdown.tsx";

function html(text: string): string {
  return render(h(Markdown, { text }));
}

it("shows raw HTML as the text it is", () => {
  for (const text of ["<script>alert(1)</script>", "a <b onclick=x>b</b>", "<img src=x onerror=y>", "- <iframe>"]) {
    expect(html(text)).not.toMatch(/<(script|b|img|iframe)\b/);
    expect(html(text)).toContain("&lt;");
  }
});

it("loads no image, and says where one would have led", () => {
  const shown = html("![cat](https://evil.example/x.png)");
  expect(shown).not.toContain("<img");
  expect(shown).toContain("image: cat");
  expect(shown).toContain("(evil.example)");
});

it.each([
  "[x](javascript:alert(1))",
  "[x](JaVaScRiPt:alert(1))",
  "[x](data:text/html,x)",
  "[x](vbscript:x)",
  "[x](file:///etc/passwd)",
  "[x](//evil.example)",
  "[x](/relative)",
  "[x](https://bank.example@evil.example/)",
])("makes no link of %s", (text) => {
  expect(html(text)).not.toContain("<a ");
});

it("shows the host of a link whose words say something else", () => {
  const shown = html("[https://bank.example](https://evil.example/login)");
  expect(shown).toContain('href="https://evil.example/login"');
  expect(shown).toContain("(evil.example)");
  expect(shown).toContain('rel="noopener noreferrer"');
});

it("shows headings, lists, tables, code and emphasis", () => {
  const shown = html("# One\n\n- [x] done\n\n|a|b|\n|-|-|\n|1|2|\n\n```js\nlet x\n```\n\n**bold** `code`");
  for (const part of ['role="heading"', "☑", "<table>", "<pre", "<strong>", "<code>"]) expect(shown).toContain(part);
});

it("ends, whatever it is given", () => {
  for (const text of ["> ".repeat(500) + "x", "[".repeat(3000), "*".repeat(3000), "- ".repeat(500), "x".repeat(100_000)]) {
    expect(html(text).length).toBeGreaterThan(0);
  }
});
