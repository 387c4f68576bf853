// The screens, each loaded when it is first opened. A screen that is not here is not in
// the navigation either.
import type { Component } from 'svelte'
import type { API } from '../api/client'
import { en } from '../text/en'

// Props are what a screen is given: path is what follows its name in the address.
export interface Props { api: API, path: string[] }

interface Screen {
  text: string // in the navigation
  load: () => Promise<{ default: Component<Props> }>
}

export const first = 'links'

export const screens: Record<string, Screen> = {
  links: { text: en.nav.links, load: () => import('./LinksScreen.svelte') },
  clicks: { text: en.nav.clicks, load: () => import('./ClicksScreen.svelte') }
}

// one is the screen of one link: /links/CODE, and /links/DOMAIN/CODE beyond the default domain.
const one: Screen = { text: en.nav.links, load: () => import('./LinkScreen.svelte') }

// find returns what an address opens.
export function find(path: string[]): Screen | undefined {
  const name = path[0] ?? first
  if (name === first && path.length > 1) return path.length <= 3 ? one : undefined
  return Object.hasOwn(screens, name) ? screens[name] : undefined
}
