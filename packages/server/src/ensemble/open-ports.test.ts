import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it.each([
  [
    'warn that their ports are open without authentication',
    {},
    'any program at an address of a member who reaches them can act as a member. Close',
  ],
  [
    'warn that a server may join over open ports',
    { reconfigEnabled: true, quorumAddressCheck: false },
    'anyone who reaches them can act as a member, or join as a new one. Close',
  ],
  [
    'that log in say that a server may join with a login',
    { reconfigEnabled: true, quorumSecret: 'x'.repeat(40) },
    'a server that no configuration names may join and read all data once it logs in',
  ],
  ['that log in and admit no other servers warn of nothing', { quorumSecret: 'x'.repeat(40) }, undefined],
])('members %s', async (_, settings, sentence) => {
  const ensemble = await Ensemble.start(3, settings)
  const lines = ensemble.lines.filter((line) => /open without authentication|may join/.test(line))
  expect(lines).toHaveLength(sentence === undefined ? 0 : 3)
  for (const line of lines) expect(line).toContain(sentence)
  for (const member of ensemble.members.values()) await member.stop()
})
