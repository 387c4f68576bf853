// later runs something once what is there now was painted, unless what it returns is
// called before. What reads sizes or gives the focus makes the browser lay the page out at
// once: done later, that is done once.
export function later(run: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const frame = requestAnimationFrame(() => { timer = setTimeout(run) })
  return () => {
    cancelAnimationFrame(frame)
    clearTimeout(timer)
  }
}

// idle runs something once what is there now was painted and the browser has nothing else to
// do, unless what it returns is called before: what nobody misses in the first moment.
export function idle(run: () => void): () => void {
  if (!('requestIdleCallback' in globalThis)) return later(run) // Safari
  const longest = 500 // milliseconds that it waits for a moment when nothing is done
  let stop = later(() => {
    const asked = requestIdleCallback(run, { timeout: longest })
    stop = () => cancelIdleCallback(asked)
  })
  return () => stop()
}

// sized tells how large the content of an element is, once it was laid out and whenever
// that changes. Asking the element would have the browser lay the page out at once.
export function sized(told: (width: number, height: number) => void): (of: Element) => () => void {
  return of => {
    const observer = new ResizeObserver(([e]) => told(e!.contentRect.width, e!.contentRect.height))
    observer.observe(of)
    return () => observer.disconnect()
  }
}
