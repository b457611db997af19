/*
 * message.h - JSON objects over SOCK_SEQPACKET, one a packet.
 *
 * A message of more than MESSAGE_INLINE bytes travels as a memory file: the
 * packet then is {"memfd": BYTES} and carries its descriptor. So no message is
 * ever too long for the socket's buffer, and none is split.
 *
 * Parent to child:            child to parent:
 *   {ask: snapshot, seq, skip}  {say: at, card, since}     card null: at none
 *   {ask: step, seq, step}      {say: begin, seq}          cards of a snapshot follow
 *   {ask: release, seq}         {say: card, seq, card, same_board}
 *   {ask: watch, seq, skip,     {say: snapshot, seq, code, text, …}   its end
 *    every_ms}                  {say: step, seq, code, text, step}
 *                               {say: released, seq}
 *                               {say: event, seq, uuid, bus_id, xid, gi, ci}
 * A card whose board is as it was in an earlier message is sent without its
 * profiles (same_board): they are most of its bytes.
 */
#ifndef DIVVY_DRIVER_MESSAGE_H
#define DIVVY_DRIVER_MESSAGE_H

#include "model/fields.h"

#define MESSAGE_INLINE (32u << 10)
#define MESSAGE_MAX (64u << 20)

/*
 * Sends and takes `take_message`. `flags` are send(2)'s: MSG_DONTWAIT gives
 * -EAGAIN where it would block. -EPIPE: the other end is gone.
 */
int message_send(int sock, json_t *take_message, int flags, struct err *e);

/*
 * The next message: 1, and `ret` is the caller's. 0: none now (MSG_DONTWAIT).
 * -EPIPE: the other end is gone. -EPROTO: nonsense.
 */
int message_receive(int sock, int flags, json_t **ret, struct err *e);

#endif
