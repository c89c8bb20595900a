import { expect, it } from 'vitest'
import { Mutex } from './mutex.ts'

it('a mutex runs one operation at a time, in the order of the calls, also after one that fails', async () => {
  const mutex = new Mutex()
  const seen: string[] = []
  const operation = async (name: string): Promise<string> => {
    seen.push(`${name} begins`)
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    seen.push(`${name} ends`)
    if (name === 'b') throw new Error('b has failed')
    return `result of ${name}`
  }
  const all = await Promise.allSettled(['a', 'b', 'c'].map((name) => mutex.run(() => operation(name))))
  expect(seen).toEqual(['a', 'b', 'c'].flatMap((name) => [`${name} begins`, `${name} ends`]))
  expect(all).toEqual([
    { status: 'fulfilled', value: 'result of a' },
    { status: 'rejected', reason: new Error('b has failed') },
    { status: 'fulfilled', value: 'result of c' },
  ])
})
