// choice is what is chosen once ids came in, or were taken out.
export function choice(was: ReadonlySet<string>, ids: string[], on: boolean): ReadonlySet<string> {
  const next = new Set(was)
  for (const id of ids) {
    if (on) next.add(id)
    else next.delete(id)
  }
  return next
}
