// Copying a short link, and saying so.
import { en } from '../text/en'
import { notices } from './notices.svelte'

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    notices.say(en.said.copied)
    return true
  } catch {
    notices.say(en.said.notCopied, true) // no permission, or a page over plain HTTP
    return false
  }
}
