// What the address asks of the statistics, where people may have written anything.
import { route } from './route.svelte'
import { filtersOf, type Filters } from './stats.svelte'
import type { Asked } from './window'

export const windowAsked = (): Asked => ({ range: route.get('range'), interval: route.get('interval'), from: route.get('from'), to: route.get('to') })
export const filtersAsked = (): Filters => filtersOf(name => route.get(name))
export const comparedAsked = (): boolean => route.get('before') !== 'off'
