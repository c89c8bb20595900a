import { CreateMode, DigestMd5Client, ErrorCode, OpCode, writeGetSASLRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { ServerSettings } from '../settings/index.ts'
import { login, sasl } from '../testing/sasl-login.ts'
import type { RawClient } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

const LOGIN_REQUIRED = `1:${ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH}`

/** Starts three members that share a secret of sessions. */
async function start(settings: Partial<ServerSettings> = {}): Promise<Ensemble> {
  const ensemble = new Ensemble(3, {
    saslUsers: { bob: 'secret', eve: 'hidden' },
    sessionSecretFile: '/secret',
    ...settings,
  })
  for (const member of ensemble.members.values()) {
    member.disk.putFile('/secret', new TextEncoder().encode('a secret of all members'))
    await member.start()
  }
  await ensemble.allServe()
  return ensemble
}

/** Opens a session at a member as bob, with the ephemeral node `/lock`. */
async function bobAt(ensemble: Ensemble, id: number): Promise<RawClient> {
  const bob = await ensemble.client(id)
  await login(bob, 'bob', 'secret')
  bob.create(9, '/lock', CreateMode.EPHEMERAL)
  expect(await ensemble.receive(bob, 1)).toEqual(['9:0'])
  return bob
}

/** Resumes the session of a client at a member and looks for the node `/lock`. Resolves to the reply. */
async function steal(ensemble: Ensemble, id: number, { session }: RawClient): Promise<string> {
  const thief = await ensemble.client(id, { resume: session! })
  thief.read(1, OpCode.exists, '/lock')
  return (await ensemble.receive(thief, 1)).join()
}

/** Resumes the session of a client at a member as a user, and looks for the node `/lock`. Resolves to the reply. */
async function resume(ensemble: Ensemble, id: number, { session }: RawClient): Promise<string> {
  const bob = await ensemble.client(id, { resume: session! })
  await login(bob, 'bob', 'secret')
  bob.read(1, OpCode.exists, '/lock')
  return (await ensemble.receive(bob, 1)).join()
}

it.each(['leader', 'follower'])(
  'a session that was opened with a login at a %s is resumed by its user alone at every member, after a restart of all of them too',
  async (role) => {
    const ensemble = await start()
    const at = role === 'leader' ? ensemble.leader! : (ensemble.leader! % 3) + 1
    const bob = await bobAt(ensemble, at)
    for (const id of ensemble.members.keys()) {
      expect(await steal(ensemble, id, bob)).toBe(LOGIN_REQUIRED)
      expect(bob.closed).toBe(false)
      bob.read(1, OpCode.exists, '/lock')
      expect(await ensemble.receive(bob, 1)).toEqual(['1:0'])
    }
    for (const id of ensemble.members.keys()) expect(await resume(ensemble, id, bob)).toBe('1:0')
    for (const member of ensemble.members.values()) await member.crash()
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    for (const id of ensemble.members.keys()) {
      expect(await steal(ensemble, id, bob)).toBe(LOGIN_REQUIRED)
      expect(await resume(ensemble, id, bob)).toBe('1:0')
    }
  },
)

it('a local session belongs to its user before and after it becomes global', async () => {
  const ensemble = await start({ localSessionsEnabled: true, localSessionsUpgradingEnabled: true })
  const at = (ensemble.leader! % 3) + 1
  const bob = await ensemble.client(at)
  await login(bob, 'bob', 'secret')
  expect(await steal(ensemble, at, bob)).toBe(LOGIN_REQUIRED)
  expect(bob.closed).toBe(false)
  bob.create(9, '/lock', CreateMode.EPHEMERAL)
  expect(await ensemble.receive(bob, 1)).toEqual(['9:0'])
  bob.sync(10)
  expect(await ensemble.receive(bob, 1)).toEqual(['10:0'])
  for (const id of ensemble.members.keys()) expect(await steal(ensemble, id, bob)).toBe(LOGIN_REQUIRED)
  expect(await resume(ensemble, ensemble.leader!, bob)).toBe('1:0')
})

it('the login that resumes a session is confirmed only when the leader has revalidated the session', async () => {
  const ensemble = await start()
  const at = (ensemble.leader! % 3) + 1
  const bob = await bobAt(ensemble, at)
  const again = await ensemble.client(at, { resume: bob.session! })
  const mechanism = new DigestMd5Client({ username: 'bob', password: 'secret', cnonce: () => 'cnonce' })
  const challenge = await sasl(again, 1, (await mechanism.step())!)
  ensemble.members.get(ensemble.leader!)!.silence()
  const token = (await mechanism.step(challenge.token))!
  again.ask(2, OpCode.sasl, (w) => writeGetSASLRequest(w, { token }))
  await ensemble.untilIdle()
  expect(
    again.replies(),
    'requests behind a confirmation would be carried out whenever the leader answers',
  ).toEqual([])
})
