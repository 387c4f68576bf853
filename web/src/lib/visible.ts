// Text that strangers chose, as it may be shown: every character that would not be seen,
// or would move what is seen, is spelled out, as on the server's own pages. Joiners stay,
// because alphabets need them.
const unseen = /(?![\u200C\u200D])[\p{Cf}\p{Cc}\p{Zl}\p{Zp}\p{Co}\u3164\u115F\u1160\uFFA0]/gu

const plain = /^[ -~]*$/ // of which nothing can be unseen, and which most texts are

export function visible(s: string): string {
  if (plain.test(s)) return s
  return s.toWellFormed().replace(unseen, c => `[U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`)
}
