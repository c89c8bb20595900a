import { silentLogger, SeededRandom } from '@zabra/runtime'
import { syncCompression } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { compareStates, readDatabase, readMemberState } from '../persistence/tools/index.ts'
import { IS_LONG } from '../testing/random-runs.ts'
import { Ensemble } from './testing/ensemble.ts'

const HISTORIES = IS_LONG ? 100 : 3
const LOCATION = { dataDir: '/data', dataLogDir: '/data' }
const VOTERS = [1, 2, 3, 4, 5]

/** Writes through the leader if there is one, and adds the paths that were acknowledged. */
async function write(ensemble: Ensemble, count: number, acknowledged: string[]): Promise<void> {
  for (let left = count; left > 0; left--) {
    if (ensemble.leader === undefined) return
    const path = `/n${acknowledged.length}-${Math.round(ensemble.clock.monotonic())}-${left}`
    const client = await ensemble.client(ensemble.leader).catch(() => undefined)
    if (client !== undefined && (await ensemble.create(client, path)) === '1:0') acknowledged.push(path)
  }
}

async function pathsOf(ensemble: Ensemble, id: number): Promise<ReadonlySet<string>> {
  const { disk } = ensemble.member(id)
  const database = await readDatabase(disk, LOCATION, syncCompression, silentLogger)
  return new Set([...database.nodes()].map(({ path }) => path))
}

it(`a recovery goes on with the survivor that has all acknowledged writes of any survivor, in ${HISTORIES} random histories`, async () => {
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const random = new SeededRandom(seed)
    const ensemble = await Ensemble.start(5)
    const acknowledged: string[] = []
    await write(ensemble, 1, acknowledged)
    for (let step = 0; step < 8; step++) {
      const member = ensemble.member(random.below(5) + 1)
      if (member.server === undefined) await member.start()
      else await member.crash()
      for (let left = random.below(30); left > 0; left--) await ensemble.advance(50)
      await write(ensemble, random.below(3), acknowledged)
    }
    for (const id of VOTERS) if (ensemble.member(id).server !== undefined) await ensemble.member(id).crash()
    // Each number of members that are left, as chance chooses them.
    for (let left = 1; left <= 3; left++) {
      const survivors = [...VOTERS]
      while (survivors.length > left) survivors.splice(random.below(survivors.length), 1)
      const states = []
      for (const id of survivors) {
        const tools = { disk: ensemble.member(id).disk, compression: syncCompression, logger: silentLogger }
        states.push({ id, state: await readMemberState(LOCATION, tools) })
      }
      const best = states.toSorted((a, b) => compareStates(a.state, b.state)).at(-1)!
      const chosen = await pathsOf(ensemble, best.id)
      const others = await Promise.all(survivors.map((id) => pathsOf(ensemble, id)))
      const known = acknowledged.filter((path) => left === 3 || others.some((paths) => paths.has(path)))
      expect(
        known.filter((path) => !chosen.has(path)),
        `seed ${seed}, survivors ${survivors.join()}`,
      ).toEqual([])
    }
  }
})
