import { Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { encodePacket, PacketType } from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const QUORUM_PORTS = [2001, 2002, 2003]
const OTHER_PORT = 9

it('a voter that two leaders without followers refuse in turns joins them at growing intervals', async () => {
  const ensemble = new Ensemble(3)
  const refusal = new Writer(64)
  encodePacket(refusal, { type: PacketType.ping, zxid: 0, data: null, auth: null })
  const bytes = refusal.take()
  await ensemble.network.listen({ port: OTHER_PORT }, (connection) => {
    connection.setHandler({ data: () => connection.write(bytes), drain() {}, closed() {} })
  })
  const joined: number[] = []
  ensemble.detour = (id, port) => {
    if (!QUORUM_PORTS.includes(port)) return port
    if (id === 1) joined.push(port - 2000)
    return OTHER_PORT
  }
  for (const member of ensemble.members.values()) await member.start()
  const lead = (): boolean => [2, 3].every((id) => ensemble.server(id).role === 'leading')
  await ensemble.until('two leaders', lead, 5000)
  // Server 1 receives no votes from the leader that refused it last, so it joins the other one next.
  ensemble.rewrite = (id, sent) => (id === joined.at(-1) ? new Uint8Array(0) : sent)
  joined.length = 0
  await ensemble.advance(7000)
  expect(new Set(joined)).toEqual(new Set([2, 3]))
  expect(joined.length).toBeLessThan(10)
  expect(lead()).toBe(true)
})
