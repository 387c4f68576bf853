// Who looks at the dashboard, and what they may do. The key lives in this module and
// nowhere else: closing or reloading the page forgets it.
import { connect, taken, type API, type Self } from '../api/client'

export type Scope = Self['scopes'][number]

class Session {
  api = $state.raw<API>()
  self = $state.raw<Self>()
  // ended says that the server no longer takes the key.
  ended = $state(false)

  // open tries the key, and has ahead ask meanwhile. Throws Refused or Unreachable.
  async open(key: string, ahead: (api: API) => void): Promise<void> {
    const api = connect(key, () => this.#end())
    const self = taken(api.GET('/api/v1/keys/self'))
    ahead(api)
    this.self = await self
    this.ended = false
    this.api = api
  }

  // may says whether the key carries the scope: what it may not do is not offered.
  may(scope: Scope): boolean {
    const scopes: Scope[] = this.self?.scopes ?? []
    return scopes.includes(scope) || scopes.includes('admin')
  }

  #end() {
    if (!this.api) return
    this.close()
    this.ended = true
  }

  close() {
    this.api = this.self = undefined
    this.ended = false
  }
}

export const session = new Session()
