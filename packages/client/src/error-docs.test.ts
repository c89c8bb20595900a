import { expect, it } from 'vitest'
import * as errors from './errors.ts'
import { documented, renderErrors } from './testing/error-docs.ts'

it('docs/errors.md matches the error table; `pnpm --filter @zabra/client gen:docs` updates it', async () => {
  await expect(renderErrors()).toMatchFileSnapshot('../../../docs/errors.md')
})

it('every error code has a meaning and advice', () => {
  const { rows, advice } = documented()
  expect(advice).toEqual(rows)
  expect(renderErrors()).not.toMatch(/\| +\| [^|]* \|$/m)
})

it('every error class is documented', () => {
  const page = renderErrors()
  const tags = Object.values(errors).flatMap((value) =>
    typeof value === 'function' && 'tag' in value ? [String(value.tag)] : [],
  )
  expect(tags.length).toBeGreaterThan(20)
  expect(tags.filter((tag) => !page.includes(`\`${tag}\``))).toEqual([])
})
