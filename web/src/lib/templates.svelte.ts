// Campaign parameters that a person uses again and again. They are a preference of this
// browser: nobody else sees them.
import { utmNames, type UTM } from './draft'

export interface Template { name: string, values: Partial<Record<UTM, string>> }

const kept = 'curt.utm'
const most = 50

function read(): Template[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(kept) ?? '[]')
    return Array.isArray(found) ? found.filter(isTemplate).slice(0, most) : []
  } catch { return [] } // storage is barred, or holds something else
}

function isTemplate(t: unknown): t is Template {
  return typeof t === 'object' && t !== null && 'name' in t && typeof t.name === 'string' && 'values' in t && typeof t.values === 'object' && t.values !== null
    && Object.entries(t.values).every(([name, v]) => utmNames.includes(name as UTM) && typeof v === 'string')
}

class Templates {
  all = $state.raw<Template[]>(read())

  // keep puts a template in the place of one of the same name.
  keep(t: Template) { this.#set([...this.all.filter(o => o.name !== t.name), t].slice(-most)) }

  drop(name: string) { this.#set(this.all.filter(t => t.name !== name)) }

  #set(all: Template[]) {
    this.all = all.toSorted((a, b) => a.name.localeCompare(b.name))
    try { localStorage.setItem(kept, JSON.stringify(this.all)) } catch { /* then they hold for this page */ }
  }
}

export const templates = new Templates()
