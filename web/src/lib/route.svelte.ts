// The address bar: which screen is open stands in the path, and what is asked of it in the
// query, so that both can be shared, and the browser's own Back works.
const root = '/app/'

const parts = (path: string): string[] => path.startsWith(root) ? path.slice(root.length).split('/').filter(p => p !== '').map(plain) : []

// plain undoes the escapes of a part of a path; what is none stays as it is.
function plain(part: string): string {
  try { return decodeURIComponent(part) } catch { return part }
}

// at is the path of a screen.
export const at = (...path: string[]): string => root + path.map(encodeURIComponent).join('/')

class Route {
  query = $state.raw(new URLSearchParams(location.search))
  // path is that of the screen, without /app, in parts; none is the first screen.
  path = $state.raw(parts(location.pathname))

  #holds = 0
  #held = '' // the address to stay at

  constructor() {
    addEventListener('popstate', () => {
      if (this.#holds > 0) history.pushState(null, '', this.#held)
      else this.#read()
    })
  }

  // hold keeps what is open, whatever Back and Forward say, until what it returns is called.
  hold(): () => void {
    if (this.#holds++ === 0) this.#held = location.href
    return () => { this.#holds-- }
  }

  get(name: string): string { return this.query.get(name) ?? '' }

  // go opens another screen.
  go(path: string) {
    history.pushState(null, '', path)
    this.#read()
    scrollTo(0, 0)
  }

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

  // follow opens the screen of a link that was clicked, where that is what a click does.
  follow(e: MouseEvent) {
    if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return
    const a = e.target instanceof Element ? e.target.closest('a') : null
    if (!a || a.target || a.hasAttribute('download') || a.origin !== location.origin || !a.pathname.startsWith(root)) return
    e.preventDefault()
    if (a.href !== location.href) this.go(a.href)
  }

  #read() {
    this.path = parts(location.pathname)
    this.query = new URLSearchParams(location.search)
  }
}

export const route = new Route()

// atLink is the path of the screen of one link.
export const atLink = (l: { domain: string, short_code: string }): string => at('links', ...(l.domain === location.host ? [] : [l.domain]), l.short_code)
