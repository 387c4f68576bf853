// What is optional in a body may be left out, and a choice is one of its words.
import type { components, paths } from './schema'

export const shortest: components['schemas']['LinkCreate'] = { long_url: 'https://example.com/a' }
export const nothing: components['schemas']['LinkChange'] = {}
export const ban: components['schemas']['BanCreate'] = { kind: 'host', name: 'evil.example', reason: 'phishing' }
export const state: components['schemas']['Link']['state'] = 'live'
// @ts-expect-error it is no state
export const wrong: components['schemas']['Link']['state'] = 'limbo'
export type Asked = paths['/api/v1/links']['get']['parameters']['query']
export const asked: Asked = { state: 'expired', limit: 10 }
