import { PassThrough, Writable } from 'node:stream'
import { expect, it } from 'vitest'
import { promptHidden } from './prompt-hidden.ts'

it('turns echo off before it prints the prompt', async () => {
  const order: string[] = []
  const stdin = Object.assign(new PassThrough(), {
    setRawMode: (raw: boolean) => void order.push(raw ? 'hidden' : 'shown'),
  })
  const stderr = new Writable({
    write: (chunk: Buffer, _, done) => {
      order.push(String(chunk))
      done()
    },
  })
  const asked = promptHidden({ stdin, stderr, signal: new AbortController().signal } as never, 'Password: ')
  stdin.write('secret\r')
  expect(await asked).toBe('secret')
  expect(order).toEqual(['hidden', 'Password: ', 'shown', '\n'])
})
