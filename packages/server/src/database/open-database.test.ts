import { MemoryDisk, type Disk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { DatabaseFixture, FOLDER, LeaderHistory } from './testing/database-fixture.ts'

/** Replaces a file as a process does that is killed before it syncs the folder. */
async function replaceWithoutFolder(disk: Disk, path: string, text: string): Promise<void> {
  const writer = await disk.openWrite(`${path}.tmp`, { create: true, durable: false })
  await writer.write(new TextEncoder().encode(text), 0)
  await writer.sync()
  await writer.close()
  await disk.rename(`${path}.tmp`, path)
}

describe('a member that starts after a kill', () => {
  it.each([
    ['whose log is in a folder of its own', { dataLogDir: '/logs' }, 3],
    ['whose log is beside its epochs', {}, 3],
    ['that has a snapshot and no log', {}, 0],
  ])('%s keeps over a power cut what it has read', async (_, settings, txns) => {
    const fixture = await DatabaseFixture.accepting(1, new MemoryDisk(), settings)
    if (txns > 0) await fixture.runRole(new LeaderHistory().createRange(1, 1, txns).txns)
    await fixture.database.close()
    const { disk } = fixture
    for (const [name, text] of [
      ['acceptedEpoch', '7'],
      ['zabra.level', '0 proposed 1\n'],
    ] as const)
      await replaceWithoutFolder(disk, `${FOLDER}/${name}`, text)
    const { epochs } = await fixture.open()
    expect(epochs.accepted).toBe(7)
    disk.powerCut()
    expect(new TextDecoder().decode(await disk.readFile(`${FOLDER}/acceptedEpoch`))).toBe('7')
    expect(new TextDecoder().decode(await disk.readFile(`${FOLDER}/zabra.level`))).toBe('0 proposed 1\n')
  })
})

it('other work runs every few milliseconds while files are read', async () => {
  const fixture = await DatabaseFixture.accepting(1)
  await fixture.runRole(new LeaderHistory().createRange(1, 1, 30).txns)
  await fixture.database.close()
  const { clock } = fixture
  // Each look at the clock takes a millisecond: there is one after each transaction.
  let now = clock.monotonic()
  clock.monotonic = () => now++
  clock.turns = 0
  await fixture.open()
  expect(clock.turns).toBeGreaterThanOrEqual(7)
})
