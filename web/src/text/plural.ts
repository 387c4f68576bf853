// A number with its noun, as English has it.
import { number } from '../lib/format'

const plural = new Intl.PluralRules('en')

export const many = (n: number, one: string, other: string): string => `${number(n)} ${plural.select(n) === 'one' ? one : other}`
