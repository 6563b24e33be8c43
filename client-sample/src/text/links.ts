/** A link that may be followed, with the host a person should see before following it. */
export interface SafeLink {
  href: string;
  host: string;
}

const SCHEMES = new Set(["http:", "https:", "mailto:"]);

/**
 * Returns *text* as a link, or null if it may not be one. Only whole http, https and
 * mailto addresses are: what an agent writes must not run, nor open another program.
 */
export function parseLink(text: string): SafeLink | null {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  if (!SCHEMES.has(url.protocol)) return null;
  // `https://bank.example@evil.example` shows the one and leads to the other.
  if (url.username || url.password) return null;
  return { href: url.href, host: url.protocol === "mailto:" ? url.pathname : url.host };
}
