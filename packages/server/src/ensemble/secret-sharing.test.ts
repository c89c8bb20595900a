import { expect, it } from 'vitest'
import type { ServerId } from '../core/quorum/index.ts'
import { apachePasswordFor } from '../core/sessions/password.ts'
import type { ServerSettings } from '../settings/index.ts'
import type { RawClient } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

const logins = { quorumSecret: 'x'.repeat(40) } satisfies Partial<ServerSettings>
const SHARED = 'All members share a secret'

/** Whether the password of a session can be computed from its id. */
const isComputable = ({ session }: RawClient): boolean =>
  Buffer.compare(session!.passwd!, apachePasswordFor(session!.sessionId)) === 0

/** Returns whether a member lets a client with this password resume a session. */
async function resumes(
  ensemble: Ensemble,
  id: ServerId,
  { session }: RawClient,
  password = session!.passwd!,
): Promise<boolean> {
  const other = await ensemble.client(id, { resume: session!, password })
  return (other.session?.timeOut ?? 0) > 0
}

const linesWith = (ensemble: Ensemble, text: string): string[] =>
  ensemble.lines.filter((line) => line.includes(text))

/** Starts members, and waits until they use a shared secret. */
async function startSharing(
  size = 3,
  settings: ConstructorParameters<typeof Ensemble>[1] = {},
): Promise<Ensemble> {
  const ensemble = await Ensemble.start(size, { ...logins, ...settings })
  await ensemble.until('a shared secret', () => linesWith(ensemble, SHARED).length > 0)
  await ensemble.advance(1000)
  return ensemble
}

/** Stops a member, and starts it with other settings. */
async function restartWith(
  ensemble: Ensemble,
  id: ServerId,
  settings: Partial<ServerSettings>,
): Promise<void> {
  const member = ensemble.member(id)
  await member.stop()
  member.settings = Object.freeze({ ...member.settings, ...settings })
  await ensemble.advance(1000)
  await ensemble.startServing(id)
}

it('members that log in give sessions passwords that cannot be computed, and each resumes those of the others', async () => {
  const ensemble = await startSharing()
  for (const id of [1, 2, 3]) {
    const client = await ensemble.client(id, { timeout: 20_000 })
    expect(isComputable(client)).toBe(false)
    const to = (id % 3) + 1
    expect(await resumes(ensemble, to, client, apachePasswordFor(client.session!.sessionId))).toBe(false)
    expect(await resumes(ensemble, to, client)).toBe(true)
  }
  expect(ensemble.lines.join('\n')).not.toMatch(/secret=|passwords of sessions follow from their ids/)
})

it('sessions are resumed after the leader is lost, and after all members have restarted', async () => {
  const ensemble = await startSharing()
  const client = await ensemble.client(3, { timeout: 60_000 })
  await ensemble.member(3).crash()
  await ensemble.until('another leader', () => ensemble.leader === 2)
  expect(await resumes(ensemble, 1, client)).toBe(true)
  for (const id of [1, 2]) await ensemble.member(id).crash()
  for (const id of [1, 2, 3]) await ensemble.member(id).start()
  await ensemble.allServe()
  expect(await resumes(ensemble, 2, client)).toBe(true)
  expect(isComputable(await ensemble.client(1))).toBe(false)
})

it('the secret is not used before all members have it, and sessions from before keep their passwords', async () => {
  const ensemble = new Ensemble(3, logins)
  for (const id of [2, 3]) await ensemble.member(id).start()
  await ensemble.allServe()
  const before = await ensemble.client(2, { timeout: 60_000 })
  expect(isComputable(before)).toBe(true)
  await ensemble.startServing(1)
  await ensemble.until('a shared secret', () => linesWith(ensemble, SHARED).length > 0)
  await ensemble.advance(1000)
  const after = await ensemble.client(2)
  expect(isComputable(after)).toBe(false)
  expect(await resumes(ensemble, 1, after, apachePasswordFor(after.session!.sessionId))).toBe(false)
  expect(await resumes(ensemble, 1, before)).toBe(true)
})

it('passwords follow from ids, with a warning, while a member takes no part, and no session is lost on the way', async () => {
  const ensemble = await startSharing()
  const first = await ensemble.client(2, { timeout: 120_000 })
  await restartWith(ensemble, 1, { sessionSecretEnabled: false })
  await ensemble.advance(1000)
  expect(linesWith(ensemble, 'take no part in the secret of sessions').join()).toContain('"servers":"1"')
  const second = await ensemble.client(2, { timeout: 120_000 })
  expect([isComputable(second), await resumes(ensemble, 1, second)]).toEqual([true, true])
  expect(await resumes(ensemble, 3, first)).toBe(true)
  await restartWith(ensemble, 1, { sessionSecretEnabled: true })
  await ensemble.until('a shared secret again', () => linesWith(ensemble, SHARED).length > 1)
  await ensemble.advance(1000)
  expect(isComputable(await ensemble.client(1))).toBe(false)
  for (const session of [first, second])
    for (const id of [1, 2, 3]) expect(await resumes(ensemble, id, session)).toBe(true)
})

it('passwords follow from ids under a leader that shares no secret, until the next one does', async () => {
  const ensemble = await startSharing()
  await restartWith(ensemble, 3, { sessionSecretEnabled: false })
  for (const id of [1, 2]) await ensemble.member(id).crash()
  await ensemble.advance(1000)
  for (const id of [1, 2]) await ensemble.member(id).start()
  await ensemble.allServe()
  expect(ensemble.leader).toBe(3)
  const client = await ensemble.client(1, { timeout: 120_000 })
  expect(isComputable(client)).toBe(true)
  await restartWith(ensemble, 3, { sessionSecretEnabled: true })
  await ensemble.until('a shared secret again', () => linesWith(ensemble, SHARED).length > 1)
  await ensemble.advance(1000)
  expect([isComputable(await ensemble.client(2)), await resumes(ensemble, 2, client)]).toEqual([false, true])
})

it('a member that has lost its file gets the secret from the others, also when it leads', async () => {
  const ensemble = await startSharing()
  const client = await ensemble.client(1, { timeout: 120_000 })
  for (const id of [1, 2, 3]) await ensemble.member(id).crash()
  await ensemble.member(3).disk.remove('/data/session.secret')
  await ensemble.advance(1000)
  for (const id of [1, 2, 3]) await ensemble.member(id).start()
  await ensemble.allServe()
  await ensemble.advance(1000)
  expect([ensemble.leader, await resumes(ensemble, 3, client)]).toEqual([3, true])
  expect(isComputable(await ensemble.client(3))).toBe(false)
})

it('observers of a follower have the secret too, and one that takes no part keeps all from using it', async () => {
  const ensemble = new Ensemble(4, { ...logins, observers: [4] })
  for (const member of ensemble.members.values())
    member.settings = Object.freeze({ ...member.settings, observerMasterPort: 5000 + member.id })
  const four = ensemble.member(4)
  four.settings = Object.freeze({ ...four.settings, observerMasterPort: 5001 })
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  await ensemble.until('a shared secret', () => linesWith(ensemble, SHARED).length > 0)
  await ensemble.advance(2000)
  const client = await ensemble.client(4, { timeout: 60_000 })
  expect([isComputable(client), await resumes(ensemble, 2, client)]).toEqual([false, true])
  await restartWith(ensemble, 4, { sessionSecretEnabled: false })
  await ensemble.advance(2000)
  expect(linesWith(ensemble, 'take no part in the secret of sessions').join()).toContain('"servers":"4"')
  expect(isComputable(await ensemble.client(2))).toBe(true)
})
