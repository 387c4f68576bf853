// Comma-separated values (RFC 4180), written as the server's own exports are.

// Before what a spreadsheet would run stands an apostrophe, which importing takes away again:
// at the beginning, and behind what separates fields for those who open the file with
// semicolons or tabs. internal/exchange/harmless.go does the same and says why.
const run = String.raw`(?=(?:(?![\t\n\r])[\p{Z}\p{Cc}\p{Cf}'"])*[=+\-@＝＋－＠﹦﹢﹣﹫])`
const formulas = new RegExp(String.raw`(^|[;|\t\n\r])${run}`, 'gu')
const stripped = /^'*[\t\n\r]/

export const harmless = (text: string): string => (stripped.test(text) ? "'" : '') + text.replace(formulas, "$1'")

function cell(text: string): string {
  const quiet = harmless(text)
  return /[",\n\r]|^\s/.test(quiet) ? `"${quiet.replaceAll('"', '""')}"` : quiet
}

export const csvRow = (cells: string[]): string => cells.map(cell).join(',') + '\n'
