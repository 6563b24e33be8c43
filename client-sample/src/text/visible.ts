const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
/** More spaces than code is indented by: they may push something out of sight. */
const SPACES = / {24,}/g;

/**
 * Returns a text with all that a person would overlook in it made visible: characters
 * that are not drawn as `⟨U+200B⟩`, long runs of spaces as `␠×400`. For what a person is
 * about to allow, where nothing may hide.
 */
export function makeVisible(text: string): string {
  return text
    .replace(INVISIBLE, (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`)
    .replace(SPACES, (spaces) => ` ␠×${spaces.length} `);
}
