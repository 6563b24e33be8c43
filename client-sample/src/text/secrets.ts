const TOKENS = /\b(?:sk-|ghp_|gho_|github_pat_|AKIA|xox[abprs]-|glpat-|sst_)[A-Za-z0-9_-]{8,}|-----BEGIN /;
const ASKS = /\b(?:pass(?:word|phrase|code)|secret|api[ -]?key|access[ -]?token|private key|credentials?|2fa|one-time code|otp)\b/i;
const WORD_CHARACTERS = 20;
/** Bits a character: words of languages have about 2.5 to 3.3, random keys about 4 to 6. */
const RANDOM_BITS = 3.5;

/** Tells whether a text looks like it holds a key or token. */
export function looksSecret(text: string): boolean {
  if (TOKENS.test(text)) return true;
  return text
    .split(/\s+/)
    .some((word) => word.length > WORD_CHARACTERS && !/[/.:]/.test(word) && entropy(word) > RANDOM_BITS && /\d/.test(word));
}

/** Tells whether a question asks for one. */
export function asksForSecret(question: string): boolean {
  return ASKS.test(question);
}

function entropy(word: string): number {
  const counts = new Map<string, number>();
  for (const character of word) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / word.length) * Math.log2(count / word.length);
  return bits;
}
