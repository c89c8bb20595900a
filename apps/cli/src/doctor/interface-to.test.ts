import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { interfaceTo } from './interface-to.ts'

it.runIf(existsSync('/sys/class/net/lo'))(
  'the interface to this machine is the loopback one, with its MTU',
  async () => {
    expect(await interfaceTo('127.0.0.1')).toEqual({ name: 'lo', mtu: expect.any(Number) })
  },
)

it('an address without a route has no interface', async () => {
  expect(await interfaceTo('not an address')).toBeUndefined()
})
