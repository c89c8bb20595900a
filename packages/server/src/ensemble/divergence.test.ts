import { makeZxid } from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { PacketSplitter, PacketType } from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const LEADER_PORT = 2003
const BETWEEN = 9
const NOWHERE = 8

/** What stands between member 1 and the leader: it notes what 1 promises, and can spoil a snapshot. */
async function standBetween(ensemble: Ensemble): Promise<{ spoils: boolean; promises: string[] }> {
  const state = { spoils: false, promises: [] as string[] }
  await ensemble.network.listen({ port: BETWEEN }, (near) => {
    const early: Uint8Array[] = []
    let far: Connection | undefined
    let afterSnap = false
    const splitter = new PacketSplitter({
      maxData: 1 << 20,
      packet: (type, zxid, data) => {
        if (type !== PacketType.ackEpoch) return
        const epoch = new DataView(data!.buffer, data!.byteOffset).getInt32(0)
        state.promises.push(`${zxid.toString(16)} in ${epoch}`)
      },
    })
    near.setHandler({
      data: (chunk) => {
        splitter.push(chunk)
        if (far === undefined) early.push(chunk.slice())
        else far.write(chunk.slice())
      },
      drain() {},
      closed: () => far?.destroy(),
    })
    ensemble.network.connect({ host: 'x', port: LEADER_PORT }).then(
      (wire) => {
        far = wire
        wire.setHandler({
          data: (chunk) => {
            const bytes = chunk.slice()
            if (state.spoils && afterSnap) bytes[0]! ^= 0x80
            afterSnap = bytes[3] === PacketType.snap && bytes.length === 20
            near.write(bytes)
          },
          drain() {},
          closed: () => near.destroy(),
        })
        for (const bytes of early) wire.write(bytes)
      },
      () => near.destroy(),
    )
  })
  return state
}

it('promises what its disk has while it asks for everything, so that no leader comes about without that', async () => {
  const ensemble = new Ensemble(3, { forceSnapshotSync: true })
  const between = await standBetween(ensemble)
  const doubts = (): boolean => ensemble.lines.join('\n').includes('it will fetch all of it anew')
  let healed = false
  ensemble.detour = (id, port) => {
    if (id !== 1 || port !== LEADER_PORT) return port
    return doubts() && !healed ? NOWHERE : BETWEEN
  }
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))
  const client = await ensemble.client(3)
  client.create(1, '/a')
  await ensemble.until('the answer', () => client.frames.length > 0)
  await ensemble.member(1).stop()
  between.spoils = true
  await ensemble.member(1).start()
  await ensemble.until('the doubt', doubts)
  // What was committed may rest on the disk of 1, whatever 1 thinks of what it was sent.
  const has = ensemble.server(1).stats().lastZxid
  between.spoils = false
  between.promises.length = 0
  await ensemble.member(2).crash()
  await ensemble.member(3).crash()
  ensemble.member(3).settings = Object.freeze({ ...ensemble.member(3).settings, forceSnapshotSync: false })
  await ensemble.member(3).start()
  await ensemble.member(2).start()
  healed = true
  await ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving), 60_000)
  expect([has, ensemble.leader]).toEqual([makeZxid(1, 2), 3])
  // It asks for everything once its promise is given, without another election.
  expect(between.promises).toEqual(['100000002 in 1', '0 in -1'])
  expect(ensemble.lines.join('\n')).toContain('The data of the leader are on disk')
})
