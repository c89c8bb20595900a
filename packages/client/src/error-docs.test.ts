import { expect, it } from 'vitest'
import * as errors from './errors.ts'
import { documented, renderErrors } from './testing/error-docs.ts'

it('docs/errors.md is what the table says; `pnpm --filter @zabra/client gen:docs` renews it', async () => {
  await expect(renderErrors()).toMatchFileSnapshot('../../../docs/errors.md')
})

it('every code has its meaning and what to do about it', () => {
  const { rows, advice } = documented()
  expect(advice).toEqual(rows)
  expect(renderErrors()).not.toMatch(/\| +\| [^|]* \|$/m)
})

it('every class of error is on the page', () => {
  const page = renderErrors()
  const tags = Object.values(errors).flatMap((value) =>
    typeof value === 'function' && 'tag' in value ? [String(value.tag)] : [],
  )
  expect(tags.length).toBeGreaterThan(20)
  expect(tags.filter((tag) => !page.includes(`\`${tag}\``))).toEqual([])
})
