// What was typed into a sheet and not saved waits here, so that closing it loses nothing.
// It goes with the key: another person at the same page finds nothing.
import type { API } from '../api/client'

const kept = new WeakMap<API, Map<string, unknown>>()

// editOf names the sheet in which a link is changed.
export const editOf = (id: string): string => 'edit ' + id

// keep holds what stands in a sheet; undefined lets go of it.
export function keep(api: API, sheet: string, typed: unknown): void {
  const all = kept.get(api) ?? new Map<string, unknown>()
  kept.set(api, all)
  if (typed === undefined) all.delete(sheet)
  else all.set(sheet, typed)
}

// keptOf returns what was held for a sheet: its kind is that of whoever held it.
export const keptOf = <T>(api: API, sheet: string): T | undefined => kept.get(api)?.get(sheet) as T | undefined

// holds says whether anything was typed that leaving the page would lose.
export const holds = (api: API): boolean => (kept.get(api)?.size ?? 0) > 0
