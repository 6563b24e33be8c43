/** @jsxImportSource react */
import { type FormEvent, useState } from "react";

/** Asks for a token where the tab has none. */
export function TokenForm({ onToken }: { onToken: (token: string) => void }) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onToken(text.trim());
  };
  return (
    <main className="token-page">
      <form onSubmit={submit}>
        <h1>GraphiQL</h1>
        <p>
          Every operation needs a token. <a href="./">Log in to Sidestage</a> in this tab, or paste one:{" "}
          <code>sidestage token create graphiql --scope view --scope read</code> makes one that changes nothing.
        </p>
        <label htmlFor="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" disabled={!text.trim()}>
          Explore
        </button>
      </form>
    </main>
  );
}
