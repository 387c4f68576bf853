// A number with its noun, as English has it: one is alone, all others are many.
import { number } from '../lib/format'

export const noun = (n: number, one: string, other: string): string => n === 1 ? one : other
export const many = (n: number, one: string, other: string): string => `${number(n)} ${noun(n, one, other)}`
