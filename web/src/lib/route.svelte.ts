// The address bar: what is asked of a screen stands in the query, so that it can be
// shared, and the browser's own Back works.
class Route {
  query = $state.raw(new URLSearchParams(location.search))

  constructor() {
    addEventListener('popstate', () => { this.query = new URLSearchParams(location.search) })
  }

  get(name: string): string { return this.query.get(name) ?? '' }

  // set changes parameters; an empty value takes one out. Typing replaces, choosing adds
  // to the history.
  set(changes: Record<string, string>, { replace = false } = {}) {
    const query = new URLSearchParams(this.query)
    for (const [name, value] of Object.entries(changes)) {
      if (value === '') query.delete(name)
      else query.set(name, value)
    }
    if (query.toString() === this.query.toString()) return
    const path = query.size ? `${location.pathname}?${query}` : location.pathname
    history[replace ? 'replaceState' : 'pushState'](null, '', path)
    this.query = query
  }
}

export const route = new Route()
