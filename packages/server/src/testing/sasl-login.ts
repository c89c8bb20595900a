import { DigestMd5Client, OpCode, readSetSASLResponse, writeGetSASLRequest } from '@zabra/protocol'
import { expect } from 'vitest'
import type { RawClient } from './test-server.ts'

/** Sends a SASL token. Returns the error and the token of the reply. */
export async function sasl(client: RawClient, xid: number, token: Uint8Array | null) {
  client.ask(xid, OpCode.sasl, (w) => writeGetSASLRequest(w, { token }))
  await client.untilIdle()
  const [reply, ...more] = client.replies()
  expect(more).toEqual([])
  expect(reply).toMatchObject({ xid, zxid: 0 })
  return { err: reply!.err, token: readSetSASLResponse(reply!.body).token }
}

/** Logs in by DIGEST-MD5 and returns the last reply. The client verifies the `rspauth` of the server. */
export async function login(client: RawClient, username: string, password: string) {
  const mechanism = new DigestMd5Client({ username, password, cnonce: () => 'cnonce' })
  const challenge = await sasl(client, 1, (await mechanism.step())!)
  expect(challenge.err).toBe(0)
  const last = await sasl(client, 2, (await mechanism.step(challenge.token))!)
  if (last.token !== null) expect(await mechanism.step(last.token)).toBeUndefined()
  return last
}
