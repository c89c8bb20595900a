import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import type { Member } from '../../ensemble/member.ts'
import { TestServer } from '../../testing/test-server.ts'
import { TreeSurvey } from './tree-survey.ts'

it('a survey of the tree reports its largest node and the longest list of children, a minute apart', async () => {
  const { fixture, client } = await TestServer.withClient()
  for (let i = 10; i < 70; i++) client.create(i, `/n${i}`, 0, 'x'.repeat(i))
  client.create(70, '/n10/large', 0, 'x'.repeat(1000))
  await fixture.untilIdle()
  const clock = new ManualClock()
  const survey = new TreeSurvey(clock)
  const { tree } = (fixture.server as Member).service!
  survey.refresh(tree)
  expect(survey.report).toBeUndefined()
  await clock.untilIdle()
  expect(survey.report).toEqual({ largestNodeBytes: 1000, mostChildren: 61 })
  client.delete(71, '/n10/large')
  await fixture.untilIdle()
  survey.refresh(tree)
  await clock.untilIdle()
  expect(survey.report!.largestNodeBytes).toBe(1000)
  clock.advance(60_000)
  survey.refresh(tree)
  await clock.untilIdle()
  expect(survey.report!.largestNodeBytes).toBe(69)
  await fixture.stop()
})
