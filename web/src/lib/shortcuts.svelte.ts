// Single keys act only outside fields and dialogs, and can be turned off: speech input
// sends letters, too (WCAG 2.1.4).
const kept = 'curt.shortcuts'

function read(): boolean {
  try { return localStorage.getItem(kept) !== 'off' } catch { return true } // storage is barred
}

class Shortcuts {
  on = $state(read())

  set(on: boolean) {
    this.on = on
    try { localStorage.setItem(kept, on ? 'on' : 'off') } catch { /* then it holds for this page */ }
  }

  editing(target: EventTarget | null): boolean {
    return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null
  }

  takes(e: KeyboardEvent): boolean {
    return this.on && !e.ctrlKey && !e.metaKey && !e.altKey && !e.isComposing && !this.editing(e.target) && !document.querySelector('dialog[open]')
  }
}

export const shortcuts = new Shortcuts()
