import { expect, it } from 'vitest'
import { Ensemble } from './testing/ensemble.ts'

it.each([
  ['warn that their ports are open without authentication', {}, 3],
  ['do not warn of open ports while they log in with a secret', { quorumSecret: 'x'.repeat(40) }, 0],
])('members %s', async (_, settings, warnings) => {
  const ensemble = await Ensemble.start(3, settings)
  expect(ensemble.lines.filter((line) => line.includes('are open without authentication'))).toHaveLength(
    warnings,
  )
  for (const member of ensemble.members.values()) await member.stop()
})
