// The screens, each loaded when it is first opened. A screen that is not here is not in
// the navigation either.
import type { Component } from 'svelte'
import type { API } from '../api/client'
import { session, type Scope } from '../lib/session.svelte'
import { en } from '../text/en'

// Props are what a screen is given: path is what follows its name in the address.
export interface Props { api: API, path: string[] }

// Loaded is a screen's code. ahead begins what it will ask first, which whoever opens it
// waits for.
interface Loaded {
  default: Component<Props>
  ahead?: (api: API, path: string[]) => void
}

interface Screen {
  text: string // in the navigation
  scopes: Scope[] // whoever carries one of them is shown it
  load: () => Promise<Loaded>
}

export const screens: Record<string, Screen> = {
  links: { text: en.nav.links, scopes: ['links:read', 'links:write'], load: () => import('./LinksScreen.svelte') },
  clicks: { text: en.nav.clicks, scopes: ['stats:read'], load: () => import('./ClicksScreen.svelte') },
  transfer: { text: en.nav.transfer, scopes: ['links:read', 'links:write'], load: () => import('./TransferScreen.svelte') },
  keys: { text: en.nav.keys, scopes: ['admin'], load: () => import('./KeysScreen.svelte') },
  safety: { text: en.nav.safety, scopes: ['admin'], load: () => import('./SafetyScreen.svelte') },
  health: { text: en.nav.health, scopes: ['admin'], load: () => import('./HealthScreen.svelte') }
}

// one is the screen of one link: /links/CODE, and /links/DOMAIN/CODE beyond the default domain.
const one: Screen = { text: en.nav.links, scopes: ['links:read', 'stats:read'], load: () => import('./LinkScreen.svelte') }

const may = (s: Screen): boolean => !session.self || s.scopes.some(scope => session.may(scope))

// shown are the screens that the key may see; the first of them is opened first.
export const shown = (): [string, Screen][] => Object.entries(screens).filter(([, s]) => may(s))
export const first = (): string => shown()[0]?.[0] ?? 'links'

// ahead begins what the screen of an address asks first, where its code is there already.
export function ahead(api: API, path: string[]): void {
  find(path)?.load().then(s => s.ahead?.(api, path.slice(1)), () => { /* Shell says so */ })
}

function named(path: string[]): Screen | undefined {
  const name = path[0] ?? first()
  return name === 'links' && path.length > 1 ? (path.length <= 3 ? one : undefined) : Object.hasOwn(screens, name) ? screens[name] : undefined
}

// find returns what an address opens. Before anybody has shown a key that is any screen.
export function find(path: string[]): Screen | undefined {
  const found = named(path)
  return found && may(found) ? found : undefined
}

// lacking are the scopes of which one opens a screen that the key may not see; none where
// there is no such screen.
export function lacking(path: string[]): Scope[] {
  const found = named(path)
  return found && !may(found) ? found.scopes : []
}
