import { lexer, type Token, type Tokens } from "marked";
import type { ComponentChild } from "preact";
import { useMemo } from "preact/hooks";
import { parseLink } from "./links.ts";

/** Deeper nesting is shown as its text: nobody writes it, but a hostile file may. */
const DEPTH_LIMIT = 12;
const AGENT_HEADING_LEVEL = 3;
/** Longer texts are shown plain: parsing must not hold the page up. */
const LENGTH_LIMIT = 40_000;

/**
 * Shows an agent's markdown. Raw HTML is shown as the text it is, images as links that
 * load nothing, and every node is made by us: no HTML string exists anywhere.
 */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(
    () => (text.length > LENGTH_LIMIT ? null : lexer(text, { gfm: true })),
    [text],
  );
  if (tokens === null) return <pre class="plain">{text}</pre>;
  return <div class="markdown">{blocks(tokens, 0)}</div>;
}

function blocks(tokens: readonly Token[], depth: number): ComponentChild[] {
  return tokens.map((token, index) => <Block key={index} token={token} depth={depth} />);
}

function Block({ token, depth }: { token: Token; depth: number }): ComponentChild {
  if (depth > DEPTH_LIMIT) return <p>{token.raw}</p>;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <Heading token={token as Tokens.Heading} />;
    case "paragraph":
      return <p>{inline((token as Tokens.Paragraph).tokens, depth)}</p>;
    case "code":
      return <CodeBlock token={token as Tokens.Code} />;
    case "blockquote":
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens, depth + 1)}</blockquote>;
    case "list":
      return <List token={token as Tokens.List} depth={depth} />;
    case "table":
      return <Table token={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "text":
      return <>{inline((token as Tokens.Text).tokens ?? [token], depth)}</>;
    default:
      // Raw HTML, and whatever a later version of the parser may find.
      return <p>{token.raw}</p>;
  }
}

function Heading({ token }: { token: Tokens.Heading }) {
  // One level for all, below the page's own: an agent's outline must not bend ours.
  return (
    <p class={`heading heading-${Math.min(token.depth, 4)}`} role="heading" aria-level={AGENT_HEADING_LEVEL}>
      {inline(token.tokens, 0)}
    </p>
  );
}

function CodeBlock({ token }: { token: Tokens.Code }) {
  const language = token.lang?.match(/^\S+/)?.[0];
  return (
    <pre class="code" tabIndex={0} aria-label={language ? `Code, ${language}` : "Code"}>
      <code>{token.text}</code>
    </pre>
  );
}

function List({ token, depth }: { token: Tokens.List; depth: number }) {
  const items = token.items.map((item, index) => (
    <li key={index} class={item.task ? "task" : undefined}>
      {item.task ? <span class="check" role="img" aria-label={item.checked ? "done" : "open"}>{item.checked ? "☑" : "☐"}</span> : null}
      {blocks(item.tokens.filter((each) => each.type !== "checkbox"), depth + 1)}
    </li>
  ));
  if (!token.ordered) return <ul>{items}</ul>;
  return <ol start={Number(token.start) || 1}>{items}</ol>;
}

function Table({ token }: { token: Tokens.Table }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{token.header.map((cell, index) => <th key={index} scope="col">{inline(cell.tokens, 0)}</th>)}</tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>{row.map((cell, at) => <td key={at}>{inline(cell.tokens, 0)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: readonly Token[] | undefined, depth: number): ComponentChild[] {
  return (tokens ?? []).map((token, index) => <Inline key={index} token={token} depth={depth} />);
}

function Inline({ token, depth }: { token: Token; depth: number }): ComponentChild {
  if (depth > DEPTH_LIMIT) return <>{token.raw}</>;
  switch (token.type) {
    case "text":
      return <>{"tokens" in token && token.tokens ? inline(token.tokens, depth + 1) : (token as Tokens.Text).text}</>;
    case "escape":
      return <>{(token as Tokens.Escape).text}</>;
    case "strong":
      return <strong>{inline((token as Tokens.Strong).tokens, depth + 1)}</strong>;
    case "em":
      return <em>{inline((token as Tokens.Em).tokens, depth + 1)}</em>;
    case "del":
      return <del>{inline((token as Tokens.Del).tokens, depth + 1)}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
    case "image":
      return <Link token={token as Tokens.Link | Tokens.Image} depth={depth} />;
    default:
      return <>{token.raw}</>;
  }
}

function Link({ token, depth }: { token: Tokens.Link | Tokens.Image; depth: number }) {
  const label =
    token.type === "image" ? `image: ${token.text || "without a name"}` : inline(token.tokens, depth + 1);
  const link = parseLink(token.href);
  if (link === null) return <span>{token.raw}</span>;
  const isHostShown = token.type !== "image" && token.text.includes(link.host);
  return (
    <>
      <a href={link.href} target="_blank" rel="noopener noreferrer">
        {label}
      </a>
      {isHostShown ? null : <span class="link-host"> ({link.host})</span>}
    </>
  );
}
