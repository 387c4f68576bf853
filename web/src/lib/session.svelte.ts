// Who looks at the dashboard. The key lives in this module and nowhere else: closing or
// reloading the page forgets it.
import { connect, taken, type API } from '../api/client'

class Session {
  api = $state.raw<API>()
  // ended says that the server no longer takes the key.
  ended = $state(false)

  // open tries the key. Throws Refused or Unreachable.
  async open(key: string): Promise<void> {
    const api = connect(key, () => this.#end())
    await taken(api.GET('/api/v1/links', { params: { query: { limit: 1 } } }))
    this.ended = false
    this.api = api
  }

  #end() {
    if (!this.api) return
    this.api = undefined
    this.ended = true
  }

  close() {
    this.api = undefined
    this.ended = false
  }
}

export const session = new Session()
