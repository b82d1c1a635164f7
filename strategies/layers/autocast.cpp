// Casts are kernels that read in one format and write in the other.
#include "strategies/layers/autocast.hpp"

#include <algorithm>

namespace rehearse {

namespace {

// By name, as the lists of frameworks are. Batch norms are grey: cuDNN's take 16 bits and add up in
// fp32 by themselves.
constexpr std::string_view black_words[] = {"softmax", "norm"};
constexpr std::string_view grey_words[] = {"batch_norm", "loss"};

bool has_any(std::string_view name, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  });
}

Piece cast(const Piece& of, std::string_view suffix, std::int64_t bytes) {
  return {.name = of.name + std::string{suffix},
          .work = Compute{.traffic = Bytes{bytes}, .math = Precision::fp32},
          .of_weights = of.of_weights,
          .recomputed = of.recomputed};
}

void add(std::vector<Piece>& out, const Piece& piece, bool forward) {
  constexpr std::int64_t half = 2, full = 4;
  const auto* work = std::get_if<Compute>(&piece.work);
  if (work == nullptr) return out.push_back(piece);
  switch (list_of(piece)) {
    case OpList::grey:
      return out.push_back(piece);
    case OpList::black: {
      // As many numbers come in from 16 bits as go out to them; in between all are twice as long.
      const std::int64_t moved = piece.result.count() / half * (half + full);
      out.push_back(cast(piece, ".cast", moved));
      Piece wide = piece;
      std::get<Compute>(wide.work).traffic = 2 * work->traffic;
      wide.elementwise = Elementwise::no;
      out.push_back(std::move(wide));
      return out.push_back(cast(piece, ".cast_back", moved));
    }
    case OpList::white:
      break;
  }
  if (forward && piece.weights > 0)
    out.push_back(cast(piece, ".weight_cast", piece.weights * (half + full)));
  if (!piece.of_weights || piece.weights == 0) return out.push_back(piece);
  // It would have added to a gradient in fp32; so it writes one in 16 bits, and a cast adds that.
  Piece narrow = piece;
  std::get<Compute>(narrow.work).traffic -= Bytes{piece.weights * (2 * full - half)};
  out.push_back(std::move(narrow));
  out.push_back(cast(piece, ".cast_add", piece.weights * (half + 2 * full)));
}

std::vector<Piece> cast_all(const std::vector<Piece>& pieces, bool forward) {
  std::vector<Piece> result;
  std::size_t exchange = 0, beside = 0;  // the last exchange, and how many more do not wait for it
  for (const Piece& piece : pieces) {
    const std::size_t before = result.size();
    add(result, piece, forward);
    // Casts of a piece beside an exchange are beside it, too.
    if (beside > 0) {
      --beside;
      result[exchange].beside =
          static_cast<std::uint8_t>(result[exchange].beside + result.size() - before - 1);
    }
    if (piece.beside > 0) exchange = before, beside = piece.beside;
  }
  return result;
}

}  // namespace

OpList list_of(const Piece& piece) {
  const auto* work = std::get_if<Compute>(&piece.work);
  if (work == nullptr) return OpList::grey;
  if (work->gemm.m > 0) return OpList::white;
  if (has_any(piece.name, grey_words)) return OpList::grey;
  return has_any(piece.name, black_words) && piece.result > Bytes{0} ? OpList::black : OpList::grey;
}

LayerPieces autocast_layer(const LayerPieces& layer) {
  LayerPieces result = layer;
  result.forward = cast_all(layer.forward, true);
  result.backward = cast_all(layer.backward, false);
  // Norms keep what they were given, in fp32.
  constexpr auto norm = static_cast<std::size_t>(ActivationKind::norm);
  result.kept[norm] = 2 * layer.kept[norm];
  result.kept_selective[norm] = 2 * layer.kept_selective[norm];
  return result;
}

}  // namespace rehearse
