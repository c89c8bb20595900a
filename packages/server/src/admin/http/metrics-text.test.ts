import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { SlicedAnswers } from '../sliced-answers.ts'
import { MetricsText } from './metrics-text.ts'

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

it('requests that arrive while the metrics are being made share one text, and later ones get another', async () => {
  let made = 0
  const begin = async (): Promise<string[]> => [`text ${++made}`, ' with é\n']
  const text = new MetricsText(new SlicedAnswers(new ManualClock()), begin)
  const shared = await Promise.all([text.next('text'), text.next('text'), text.next('text')])
  expect(shared.map(textOf)).toEqual(Array.from({ length: 3 }, () => 'text 1 with é\n'))
  expect(textOf(await text.next('text'))).toBe('text 2 with é\n')
})

it('texts of different forms are made each for itself, and shared by requests for their form', async () => {
  let made = 0
  const begin = async (form: string): Promise<string[]> => [`${form} ${++made}`]
  const text = new MetricsText(new SlicedAnswers(new ManualClock()), begin)
  const all = await Promise.all(['a', 'b', 'a', 'b'].map((form) => text.next(form)))
  expect(all.map(textOf)).toEqual(['a 1', 'b 2', 'a 1', 'b 2'])
  expect(textOf(await text.next('b'))).toBe('b 3')
})

it('requests that share a text get it in several iterations of the event loop', async () => {
  const due: (() => void)[] = []
  const clock = { monotonic: () => 0, immediate: (action: () => void) => void due.push(action) }
  const text = new MetricsText(new SlicedAnswers(clock), async () => ['text'])
  let [got, most] = [0, 0]
  for (let i = 0; i < 20; i++) void text.next('text').then(() => got++)
  do {
    const before = got
    for (let i = 0; i < 50; i++) await Promise.resolve()
    most = Math.max(most, got - before)
    for (const action of due.splice(0)) action()
  } while (due.length > 0)
  expect(got).toBe(20)
  // The one that it is made for gets it at once.
  expect(most).toBe(9)
})

it('metrics that could not be made are made anew for the next request', async () => {
  let asked = 0
  const begin = async (): Promise<string[]> => {
    if (++asked === 1) throw new Error('no figures')
    return ['text']
  }
  const text = new MetricsText(new SlicedAnswers(new ManualClock()), begin)
  const both = await Promise.allSettled([text.next('text'), text.next('text')])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(textOf(await text.next('text'))).toBe('text')
})
