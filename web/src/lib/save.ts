// save gives the person a file, as a download.
export function save(file: Blob, name: string) {
  const address = URL.createObjectURL(file)
  const a = document.createElement('a')
  a.href = address
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(address), 60_000) // the browser may still read it
}

// stamped is a name with the day, such as links-2026-06-01.csv.
export function stamped(name: string, ending: string, now = new Date()): string {
  const two = (n: number) => String(n).padStart(2, '0')
  return `${name}-${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}.${ending}`
}
