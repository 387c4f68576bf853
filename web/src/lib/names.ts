// What values of dimensions are called in the person's language.
import { en } from '../text/en'
import { once } from './once'
import { visible } from './visible'

const regions = once(() => new Intl.DisplayNames(undefined, { type: 'region', fallback: 'code' }))
const languages = once(() => new Intl.DisplayNames(undefined, { type: 'language', fallback: 'code' }))

function known(names: Intl.DisplayNames, code: string): string {
  try { return names.of(code) ?? code } catch { return code } // a stranger's header named it
}

// nameOf returns how a value is shown. Strangers choose most values.
export function nameOf(dimension: string, value: string): string {
  const spoken = en.stats.values[value as keyof typeof en.stats.values]
  if (spoken) return spoken
  if (dimension === 'country') return visible(known(regions(), value))
  if (dimension === 'language') return visible(known(languages(), value))
  return visible(value)
}
