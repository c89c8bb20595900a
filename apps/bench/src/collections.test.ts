import { expect, it } from 'vitest'
import { parseCollections } from './collections.ts'

it('parseCollections adds up the collections and skips other lines', () => {
  const output = [
    '{"level":"info","msg":"Serving"}',
    '[7:0x1] 99 ms: pause=2.0 mutator=87.6 gc=s total_size_before=4074336 allocated=4000000 promoted=0',
    '[7:0x1] 105 ms: pause=5.25 mutator=1.0 gc=mc total_size_before=4074328 allocated=898464 promoted=100376',
    '[7:0x1] 110 ms: pause=1.0 mut',
  ].join('\n')
  expect(parseCollections(output)).toEqual({ count: 2, allocated: 4_898_464, longest: 5.25 })
  expect(parseCollections('')).toEqual({ count: 0, allocated: 0, longest: 0 })
})
