import { useState } from "preact/hooks";
import { loginNotice, keepToken } from "./token.ts";
import { Notice } from "../ui/parts.tsx";

const TOKEN_FORM = /^sst_[0-9a-f]{16}_[A-Za-z0-9_-]{43}$/;

/** The page without a login: how to get one, and a field for a token. */
export function Login() {
  const [text, setText] = useState("");
  const [isWrong, setWrong] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    const trimmed = text.trim();
    if (TOKEN_FORM.test(trimmed)) keepToken(trimmed);
    else setWrong(true);
  };
  return (
    <main class="login" id="main">
      <img src="./icon.svg" alt="" width="56" height="56" />
      <h1>Sidestage</h1>
      {loginNotice.value ? <Notice tone="bad">{loginNotice.value}</Notice> : null}
      <section class="card">
        <h2>On this machine</h2>
        <p>
          Run <code>sidestage open</code> in a terminal. It opens this page, logged in for twelve hours.
        </p>
      </section>
      <section class="card">
        <h2>On a phone or another computer</h2>
        <p>
          Run <code>sidestage pair</code> on the machine and scan the code it shows.
        </p>
      </section>
      <form class="card" onSubmit={submit}>
        <h2>With a token</h2>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          spellcheck={false}
          value={text}
          placeholder="sst_…"
          aria-invalid={isWrong}
          aria-describedby="token-help"
          onInput={(event) => {
            setText(event.currentTarget.value);
            setWrong(false);
          }}
        />
        <p id="token-help" class="muted">
          {isWrong
            ? "That is not a whole token: it begins with sst_ and has 64 characters."
            : "Made by sidestage token create. It is kept until this tab is closed."}
        </p>
        <button class="primary" type="submit" disabled={!text.trim()}>
          Log in
        </button>
      </form>
    </main>
  );
}
