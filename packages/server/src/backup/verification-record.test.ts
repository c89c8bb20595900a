import { expect, it } from 'vitest'
import { storeWith } from './testing/manifests.ts'
import { readVerification, writeVerification } from './verification-record.ts'

it('the result of a verification is what was written last, or none', async () => {
  const { store, write } = await storeWith()
  expect(await readVerification(store)).toBeUndefined()
  const sound = { time: 5, snapshot: 'manifest/snapshot-1.json', problem: null }
  await writeVerification(store, sound)
  expect(await readVerification(store)).toEqual(sound)
  await writeVerification(store, { ...sound, problem: 'x'.repeat(2001) })
  expect(await readVerification(store)).toEqual({ ...sound, problem: 'x'.repeat(2000) })
  for (const text of [
    '{',
    '{}',
    JSON.stringify({ ...sound, time: -1 }),
    JSON.stringify({ ...sound, problem: 7 }),
  ]) {
    await write('verified', text)
    expect(await readVerification(store), text).toBeUndefined()
  }
})

it('the result of a verification is not taken for absent where it cannot be read', async () => {
  const { store, disk } = await storeWith()
  await writeVerification(store, { time: 5, snapshot: 'x', problem: null })
  disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
  await expect(readVerification(store)).rejects.toThrow('EIO')
})
