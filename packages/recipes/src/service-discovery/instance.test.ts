import { describe, expect, it } from 'vitest'
import { UsageError } from '@zabra/client/core'
import { bytes, text } from '../testing/world.ts'
import { ErrorTracker, usableInstances } from './down.ts'
import { instanceCodec, type Instance } from './instance.ts'
import { strategies } from './strategies.ts'
import { uriOf, uriSpec } from './uri-spec.ts'

const codec = instanceCodec<unknown>({ encode: (payload) => payload, decode: (json) => json })
const instance = (id: string, more: Partial<Instance> = {}): Instance => ({
  name: 'api',
  id,
  registrationTimeUTC: 7,
  serviceType: 'DYNAMIC',
  enabled: true,
  ...more,
})

describe('instance JSON', () => {
  it("has all ten fields, in Curator's order, null for missing ones", () => {
    expect(text(codec.encode(instance('a', { address: 'host', port: 80 })))).toBe(
      '{"name":"api","id":"a","address":"host","port":80,"sslPort":null,"payload":null,' +
        '"registrationTimeUTC":7,"serviceType":"DYNAMIC","uriSpec":null,"enabled":true}',
    )
  })

  it('round-trips', () => {
    const full = instance('a', {
      address: 'host',
      port: 80,
      sslPort: 443,
      payload: { '@class': 'com.example.Payload', zone: 'ä' },
      serviceType: 'PERMANENT',
      uriSpec: uriSpec('{scheme}://{address}'),
      enabled: false,
    })
    expect(codec.decode(codec.encode(full))).toEqual(full)
  })

  it('accepts instances of a Curator without `enabled`, and unknown fields', () => {
    const older = '{"name":"api","id":"a","serviceType":"STATIC","registrationTimeUTC":7,"more":[1]}'
    expect(codec.decode(bytes(older))).toEqual(instance('a', { serviceType: 'STATIC' }))
  })

  it.each([
    '',
    'null',
    '[]',
    '{"name":"api"}',
    '{"name":1,"id":"a"}',
    '{"name":"a","id":"b","serviceType":"x"}',
  ])('is refused when it is none: %s', (json) => {
    expect(() => codec.decode(bytes(json))).toThrow()
  })
})

describe('an instance address', () => {
  it("is built from its template, its fields and the caller's variables", () => {
    const spec = uriSpec('{scheme}://{address}:{port}/{ version }')
    const at = instance('a', { address: 'host', port: 80, uriSpec: spec })
    expect(uriOf(at, { version: 'v2' })).toBe('http://host:80/v2')
    expect(uriOf({ ...at, sslPort: 443 }, { version: 'v2' })).toBe('https://host:80/v2')
  })

  it('is rejected without a template, with an unclosed brace, and for an unknown variable', () => {
    expect(() => uriOf(instance('a'))).toThrow(UsageError)
    expect(() => uriSpec('http://{address')).toThrow(UsageError)
    expect(() => uriOf(instance('a', { uriSpec: uriSpec('{constructor}') }))).toThrow(UsageError)
  })
})

describe('a strategy', () => {
  const abc = ['a', 'b', 'c'].map((id) => instance(id))
  const ids = (choose: (n: number) => Instance | undefined, count: number): string =>
    Array.from({ length: count }, (_, n) => choose(n)?.id ?? '-').join('')

  it('roundRobin chooses each instance in turn, also when instances join and leave', () => {
    const choose = strategies.roundRobin()
    expect(ids(() => choose(abc, () => 0), 4)).toBe('abca')
    expect(choose([instance('aa'), ...abc.slice(1)], () => 0)?.id).toBe('aa')
    expect(choose([instance('c')], () => 0)?.id).toBe('c')
    expect(choose([], () => 0)).toBeUndefined()
  })

  it('random chooses by the drawn number', () => {
    expect(ids((n) => strategies.random()(abc, () => n), 3)).toBe('abc')
  })

  it('sticky changes only when its instance is gone', () => {
    const choose = strategies.sticky()
    expect(ids((n) => choose(abc, () => n), 3)).toBe('aaa')
    expect(choose(abc.slice(1), () => 1)?.id).toBe('c')
    expect(choose(abc, () => 0)?.id).toBe('c')
  })

  it('weighted chooses in proportion, and never a weight of 0', () => {
    const choose = strategies.weighted(({ id }) => ({ a: 2, b: 0 })[id] ?? 1)
    expect(ids((n) => choose(abc, () => n), 3)).toBe('aac')
    expect(strategies.weighted(() => 0)(abc, () => 0)).toBeUndefined()
    expect(() => strategies.weighted(() => 0.5)(abc, () => 0)).toThrow(UsageError)
  })
})

describe('an instance counts as down', () => {
  it('after enough errors within the window, until they are outdated', () => {
    const errors = new ErrorTracker({ errors: 2, withinMs: 100 })
    errors.record('a', 0)
    expect(errors.isDown('a', 0)).toBe(false)
    errors.record('a', 60)
    expect([errors.isDown('a', 99), errors.isDown('a', 100)]).toEqual([true, false])
    errors.record('a', 120)
    expect(errors.isDown('a', 120)).toBe(true)
    errors.retain([])
    expect(errors.isDown('a', 120)).toBe(false)
  })

  it('and is skipped, unless all are down', () => {
    const all = [instance('a'), instance('b'), instance('c', { enabled: false })]
    const ids = (down: string): string[] =>
      usableInstances(all, (id) => down.includes(id)).map(({ id }) => id)
    expect([ids(''), ids('a'), ids('ab')]).toEqual([['a', 'b'], ['b'], ['a', 'b']])
  })
})
